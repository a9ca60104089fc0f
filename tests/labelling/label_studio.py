"""A Label Studio server as far as it is used: projects, tasks, annotations, two kinds of tokens."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

LEGACY, PERSONAL, SHORT = "marked-legacy-key", "marked-a.marked-b.marked-c", "marked-short-lived"


class FakeLabelStudio:
    """Serves within the context."""

    def __init__(self) -> None:
        self.projects: dict[int, list[dict[str, Any]]] = {}
        self.configs: dict[int, str] = {}
        self.requests: list[tuple[str, str]] = []
        self.broken = ""
        self.moved = ""
        self.refuses = ""
        self.drops = 0

    def annotate(self, project: int, score: float, by: str, task: int = 0) -> None:
        """Somebody labels."""
        result = [{"from_name": "score", "to_name": "response", "type": "choices"}]
        result[0]["value"] = {"choices": [f"{score:g}"]}  # type: ignore[assignment]
        done = {"result": result, "completed_by": {"email": by}, "lead_time": 3.0}
        self.projects[project][task].setdefault("annotations", []).append(done)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve()

            def do_POST(self) -> None:
                self._serve()

            def _serve(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
                code, said = fake._reply(self.command, self.path, body, self.headers.get("Authorization"))
                content = said.encode() if isinstance(said, str) else json.dumps(said).encode()
                self.send_response(code)
                if fake.moved:
                    self.send_header("Location", fake.moved + self.path)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, ex: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _reply(self, method: str, path: str, body: Any, token: str | None) -> tuple[int, Any]:
        self.requests.append((method, path))
        if self.moved:
            return 302, ""
        if self.broken:
            return 200, self.broken
        if self.refuses and path != "/api/token/refresh":
            return 403, {"detail": self.refuses}
        if path == "/api/token/refresh":
            return (200, {"access": SHORT}) if body == {"refresh": PERSONAL} else (401, {"detail": "no"})
        if token not in (f"Token {LEGACY}", f"Bearer {SHORT}"):
            return 401, {"detail": "Invalid token."}
        if (method, path) == ("POST", "/api/projects/"):
            number = len(self.projects) + 7
            self.projects[number], self.configs[number] = [], body["label_config"]
            return 201, {"id": number, "title": body["title"]}
        number, _, rest = path.removeprefix("/api/projects/").partition("/")
        if int(number) not in self.projects:
            return 404, {"detail": "Not found."}
        tasks = self.projects[int(number)]
        if (method, rest) == ("POST", "import"):
            tasks.extend({**task, "id": len(tasks) + k} for k, task in enumerate(body))
            return 201, {"task_count": len(body) - self.drops}
        if rest == "export?exportType=JSON&download_all_tasks=true":
            return 200, tasks
        return 405, {"detail": "?"}
