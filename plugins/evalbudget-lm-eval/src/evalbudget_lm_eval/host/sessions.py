"""The host's sessions, through which its API classes send: they notice what is sent, and what is replied."""

from __future__ import annotations

from typing import Any


class NoticingSession:
    """Notices that a request is sent through the host's session."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.sent = False

    def post(self, *given: Any, **named: Any) -> Any:
        """As the session's."""
        self.sent = True
        return self._session.post(*given, **named)


class HearingSession(NoticingSession):
    """Keeps what the server replied, too."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self.reply: Any = None

    def post(self, *given: Any, **named: Any) -> Any:
        """As the session's."""
        return _Posted(self, super().post(*given, **named))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _Posted:
    """A request of the session, on its way."""

    def __init__(self, owner: HearingSession, posted: Any) -> None:
        self._owner = owner
        self._posted = posted

    async def __aenter__(self) -> Any:
        return _Response(self._owner, await self._posted.__aenter__())

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._posted.__aexit__(*raised)


class _Response:
    """What came back; tells its session what it says."""

    def __init__(self, owner: HearingSession, response: Any) -> None:
        self._owner = owner
        self._response = response

    async def json(self, *given: Any, **named: Any) -> Any:
        """As the response's."""
        self._owner.reply = await self._response.json(*given, **named)
        return self._owner.reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)
