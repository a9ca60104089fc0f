"""Files in a sample's input: inspect reads those of samples it starts with, not of those it is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from inspect_ai import util
from inspect_ai.model import Content, ContentAudio, ContentDocument, ContentImage, ContentVideo
from inspect_ai.solver import TaskState

# releases without it read the files of every sample by themselves
_materialize: Callable[..., Awaitable[str]] | None = getattr(util, "materialize_media", None)

_VIDEO = {"mp4": "video/mp4", "mpeg": "video/mpeg", "mov": "video/quicktime"}


async def with_media(state: TaskState) -> None:
    """Read the files that the dataset's own messages name, as inspect does for a plain dataset."""
    if _materialize is None:
        return
    for message in state.messages:
        if not isinstance(message.content, str):
            message.content = [await _read(part, _materialize) for part in message.content]


async def _read(part: Content, read: Callable[..., Awaitable[str]]) -> Content:
    if isinstance(part, ContentImage):
        return part.model_copy(update={"image": await _data(part.image, None, read)})
    if isinstance(part, ContentAudio):
        kind = "audio/mpeg" if part.format == "mp3" else "audio/wav"
        return part.model_copy(update={"audio": await _data(part.audio, kind, read)})
    if isinstance(part, ContentVideo):
        return part.model_copy(update={"video": await _data(part.video, _VIDEO[part.format], read)})
    if isinstance(part, ContentDocument):
        return part.model_copy(update={"document": await _data(part.document, part.mime_type, read)})
    return part


async def _data(reference: str, kind: str | None, read: Callable[..., Awaitable[str]]) -> str:
    return reference if reference.startswith("data:") else await read(reference, kind)
