"""A project on a Label Studio server: tasks are pushed, labels are pulled."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.client import HTTPException
from typing import Any

from evalbudget.audits.store import AuditStore, Imported, alone, import_labels, still_wanted
from evalbudget.errors import InvalidInputError
from evalbudget.secrets import keep_out, without_secrets
from evalbudget.untrusted import largest, parsed_json
from evalbudget_labelling._exporting import export

_AT_ONCE = 250  # tasks of one request
_SECONDS = 60.0
_PIECE = 1 << 16  # bytes
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Synced:
    """What went to and fro.

    Attributes:
        project: its number on the server.
        created: it was created.
        pushed: tasks that are new there.
        labels: what became of those that were there.
    """

    project: int
    created: bool
    pushed: int
    labels: Imported


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A key must not follow to wherever a server points, and a POST would arrive there as a GET."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: the redirect is an error."""


_OPENER = urllib.request.build_opener(_NoRedirect)


class LabelStudio:
    """A server, by its REST interface.

    Args:
        url: of the server, ``http://localhost:8080``.
        key: a legacy token, or a personal access token.

    Raises:
        InvalidInputError: the address is none, or says who asks, or the key is none.
    """

    def __init__(self, url: str, key: str) -> None:
        if "@" in url or without_secrets(url) != url:
            raise InvalidInputError(
                "--url has a password or a key in it, and is kept in the store; leave it out, and set "
                "LABEL_STUDIO_API_KEY to a token of an account"
            )
        if not _is_of_a_server(url):
            raise InvalidInputError(
                f"--url {url!r} is no address of a server; give for example http://localhost:8080"
            )
        self.url = url.rstrip("/")
        self._key = key.strip()
        keep_out({"api_key": self._key})  # a server may repeat it
        self._header = self._said("Token", self._key)
        if self._key.count(".") == 2:  # a JSON web token: it is exchanged for one that lasts minutes
            found = self._ask("POST", "/api/token/refresh", {"refresh": self._key}, header=None)
            lent = self._entry(found, "access", str)
            keep_out({"api_key": lent})
            self._header = self._said("Bearer", lent)

    def _said(self, kind: str, key: str) -> str:
        if not (key.isascii() and key.isprintable()):  # else the HTTP client quotes it
            raise InvalidInputError(
                f"a key for {self.url} has line breaks or letters that no key has; set "
                "LABEL_STUDIO_API_KEY to a token of an account there (Account & Settings), whole and alone"
            )
        return f"{kind} {key}"

    def create(self, title: str, config: str) -> int:
        """A new project; its number."""
        found = self._ask("POST", "/api/projects/", {"title": title, "label_config": config})
        number: int = self._entry(found, "id", int)
        return number

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """All of a project, with what was annotated."""
        path = f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true"
        found = self._ask("GET", path)
        if not isinstance(found, list) or not all(isinstance(task, dict) for task in found):
            raise InvalidInputError(f"{self.url} answered something else than tasks; is it Label Studio?")
        return found

    def add(self, project: int, tasks: list[dict[str, Any]]) -> None:
        """Further tasks of a project."""
        for begin in range(0, len(tasks), _AT_ONCE):
            part = tasks[begin : begin + _AT_ONCE]
            taken = self._entry(self._ask("POST", f"/api/projects/{project}/import", part), "task_count", int)
            if taken != len(part):
                raise InvalidInputError(
                    f"project {project} of {self.url} took {taken} of {len(part)} tasks; see what is "
                    "there, and "
                    "sync again"
                )

    def _entry(self, found: Any, name: str, kind: type) -> Any:
        value = found.get(name) if isinstance(found, dict) else None
        if not isinstance(value, kind):
            raise InvalidInputError(f"{self.url} answered without {name!r}; is it Label Studio?")
        return value

    def _ask(self, method: str, path: str, body: object = None, *, header: str | None = "") -> Any:
        headers = {"Content-Type": "application/json"}
        if header is not None:
            headers["Authorization"] = self._header
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with _OPENER.open(request, timeout=_SECONDS) as reply:
                return parsed_json(_content(reply))
        except urllib.error.HTTPError as ex:
            said = b""
            with ex, suppress(HTTPException, OSError):
                said = ex.read(2000)
            if 300 <= ex.code < 400:
                where = without_secrets(str(ex.headers.get("Location")))
                raise InvalidInputError(
                    f"{self.url} sends elsewhere, to {where}; if that is the server, give its "
                    "address as --url (the key is sent nowhere else)"
                ) from ex
            told = " ".join(without_secrets(said.decode("utf-8", "replace")).split())[:_SHOWN]
            remedy = {
                401: "set LABEL_STUDIO_API_KEY to a token of an account there (Account & Settings)",
                403: "the account of LABEL_STUDIO_API_KEY may not do that; take one that can",
                404: "check --project and --url",
            }.get(ex.code, "see what the server says")
            raise InvalidInputError(f"{method} {self.url}{path}: {ex.code} {told}; {remedy}") from ex
        except (urllib.error.URLError, OSError) as ex:
            reason = getattr(ex, "reason", ex)
            raise InvalidInputError(f"{self.url} cannot be reached ({reason}); check --url") from ex
        except InvalidInputError:
            raise
        except (ValueError, HTTPException) as ex:
            told = without_secrets(str(ex))  # which quotes a header that is none
            raise InvalidInputError(
                f"{method} {self.url}{path} answered something that is no JSON ({told}); is it Label Studio?"
            ) from ex


def _is_of_a_server(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:  # brackets that do not close, say
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _content(reply: Any) -> bytearray:
    """All of it, piece by piece: one declared length alone would fill the memory."""
    said = bytearray()
    while piece := reply.read(_PIECE):
        said += piece
        if len(said) > largest():
            raise ValueError(f"it is more than {largest() / 2**30:g} GiB")
    return said


def sync(store: AuditStore, server: LabelStudio, project: int | None) -> Synced:
    """Take in the labels of a project, and give it what is still to be labelled and not there yet.

    Doing it again changes nothing, and one sync of a store waits for the other. Tasks are recognised by their
    ids; those of anybody else are left alone. The project is remembered.

    Args:
        store: the audit.
        server: where.
        project: its number; None for the one of last time, or a new one.

    Raises:
        InvalidInputError: the server refuses or cannot be reached; a label cannot be used: the others are in.
        AuditStoreError: the store is damaged, or cannot be written.
    """
    with alone(store.address, "sync", wait=True):
        last = _last_project(store, server.url)
        project = last if project is None else project
        created = project is None
        if project is None:
            project = server.create(f"evalbudget {store.address.title}", export(store, "label-studio-config"))
        if project != last:
            store.projects.append(json.dumps({"url": server.url, "project": project}))
        there = [task for task in server.tasks(project) if _is_ours(task)]
        labels, refused = _imported(store, there)
        known = {task["data"]["task"] for task in there}
        still = json.loads(
            export(store, "label-studio", labelled=False, among=frozenset(still_wanted(store)))
        )
        new = [task for task in still if task["data"]["task"] not in known]
        server.add(project, new)
    if refused:
        more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
        raise InvalidInputError(f"project {project} of {server.url}: {refused[0]}{more}; all others are in")
    return Synced(project, created, len(new), labels)


def _last_project(store: AuditStore, url: str) -> int | None:
    """The one of last time; None if that was on another server."""
    try:
        *_, last = store.projects.all().values()
        known = parsed_json(last)
        return int(known["project"]) if known["url"] == url else None
    except (ValueError, LookupError, TypeError, OverflowError):
        return None


def _is_ours(task: dict[str, Any]) -> bool:
    data = task.get("data")
    return isinstance(data, dict) and isinstance(data.get("task"), str)


def _imported(store: AuditStore, tasks: list[dict[str, Any]]) -> tuple[Imported, list[str]]:
    """All labels at once; where one of them cannot be used, task by task, and why."""
    try:
        return import_labels(store, json.dumps(tasks), "label-studio"), []
    except InvalidInputError:
        pass
    total, refused = Counter[str](), list[str]()
    for task in tasks:
        try:
            total.update(asdict(import_labels(store, json.dumps([task]), "label-studio")))
        except InvalidInputError as ex:
            refused.append(str(ex).partition("entry 1: ")[2] or str(ex))
    return Imported(
        **{name: total[name] for name in ("new", "known", "agrees", "conflicts", "empty")}
    ), refused
