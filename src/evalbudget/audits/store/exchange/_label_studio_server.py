"""A project on a Label Studio server: tasks are pushed, labels are pulled."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from evalbudget.audits.store._store import AuditStore
from evalbudget.audits.store.exchange._exporting import export
from evalbudget.audits.store.exchange._importing import Imported, import_labels
from evalbudget.errors import InvalidInputError

_AT_ONCE = 250  # tasks of one request
_SECONDS = 60.0
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


class LabelStudio:
    """A server, by its REST interface.

    Args:
        url: of the server, ``http://localhost:8080``.
        key: a legacy token, or a personal access token.

    Raises:
        InvalidInputError: the address is none.
    """

    def __init__(self, url: str, key: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InvalidInputError(
                f"--url {url!r} is no address of a server; give for example http://localhost:8080"
            )
        self.url = url.rstrip("/")
        self._key = key.strip()
        self._header = f"Token {self._key}"
        if self._key.count(".") == 2:  # a JSON web token: it is exchanged for one that lasts minutes
            found = self._ask("POST", "/api/token/refresh", {"refresh": self._key}, header=None)
            self._header = f"Bearer {found['access']}"

    def create(self, title: str, config: str) -> int:
        """A new project; its number."""
        return int(self._ask("POST", "/api/projects/", {"title": title, "label_config": config})["id"])

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """All of a project, with what was annotated."""
        path = f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true"
        found = self._ask("GET", path)
        if not isinstance(found, list):
            raise InvalidInputError(
                f"{self.url}{path} answered something else than tasks; is it Label Studio?"
            )
        return found

    def add(self, project: int, tasks: list[dict[str, Any]]) -> None:
        """Further tasks of a project."""
        for begin in range(0, len(tasks), _AT_ONCE):
            self._ask("POST", f"/api/projects/{project}/import", tasks[begin : begin + _AT_ONCE])

    def _ask(self, method: str, path: str, body: object = None, *, header: str | None = "") -> Any:
        headers = {"Content-Type": "application/json"}
        if header is not None:
            headers["Authorization"] = self._header
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as ex:
            told = " ".join(ex.read(2000).decode("utf-8", "replace").split())[:_SHOWN]
            remedy = {
                401: "set LABEL_STUDIO_API_KEY to a token of an account there (Account & Settings)",
                403: "the account of LABEL_STUDIO_API_KEY may not do that; take one that can",
                404: "check --project and --url",
            }.get(ex.code, "see what the server says")
            raise InvalidInputError(f"{method} {self.url}{path}: {ex.code} {told}; {remedy}") from ex
        except (urllib.error.URLError, OSError) as ex:
            reason = getattr(ex, "reason", ex)
            raise InvalidInputError(f"{self.url} cannot be reached ({reason}); check --url") from ex
        except ValueError as ex:
            raise InvalidInputError(
                f"{method} {self.url}{path} answered something that is no JSON; is it Label Studio?"
            ) from ex


def sync(
    store: AuditStore,
    server: LabelStudio,
    project: int | None,
    wanted: Callable[[AuditStore], Collection[int]],
) -> Synced:
    """Take in the labels of a project, and give it what is still to be labelled and not there yet.

    Doing it again changes nothing. Tasks are recognised by their ids, which nobody may change there.

    Args:
        store: the audit.
        server: where.
        project: its number; None to create one.
        wanted: draws whose label is waited for, once the labels there are in.

    Raises:
        InvalidInputError: the server refuses or cannot be reached; a label cannot be used, and none was
            recorded.
    """
    created = project is None
    if project is None:
        project = server.create(f"evalbudget {store.path.name}", export(store, "label-studio-config"))
    there = server.tasks(project)
    try:
        labels = import_labels(store, json.dumps(there), "label-studio")
    except InvalidInputError as ex:
        raise InvalidInputError(f"project {project} of {server.url}: {ex}") from ex
    known = {task["data"]["task"] for task in there}
    still = json.loads(export(store, "label-studio", labelled=False, among=frozenset(wanted(store))))
    new = [task for task in still if task["data"]["task"] not in known]
    server.add(project, new)
    return Synced(project, created, len(new), labels)
