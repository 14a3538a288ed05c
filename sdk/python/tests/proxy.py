"""An HTTP proxy before the service that loses answers, hangs and lies, as a test asks."""

from __future__ import annotations

import http.client
import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit


@dataclass
class Fault:
    """What happens to one request."""

    kind: Literal["lose", "refuse", "hang", "answer"]  # lose: the service does it, and the answer is dropped
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def problem(status: int, code: str, **headers: str) -> Fault:
    """An answer as the service gives it."""
    body = {"type": "about:blank", "title": code, "status": status, "detail": "as the test asks", "code": code, "request_id": "r-1"}
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault("answer", status, {"Content-Type": "application/problem+json", **fields}, json.dumps(body).encode())


@dataclass
class Seen:
    """A request that arrived."""

    method: str
    path: str
    key: str | None
    body: Any


class Proxy:
    """Forwards requests, except those with a fault."""

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.faults: deque[Fault] = deque()
        self.down: Fault | None = None  # the fault of every request
        self.seen: list[Seen] = []
        self.released = threading.Event()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionError, http.client.HTTPException):
                    self.close_connection = True

            def forward(self) -> None:
                proxy.handle(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        raw = handler.rfile.read(length)
        self.seen.append(Seen(handler.command, handler.path, handler.headers.get("Idempotency-Key"), json.loads(raw) if raw else None))
        fault = self.down or (self.faults.popleft() if self.faults else None)
        handler.close_connection = True
        if fault is None or fault.kind == "lose":
            status, headers, body = self.ask(handler, raw)
            if fault is None:
                self.answer(handler, status, headers, body)
        elif fault.kind == "answer":
            self.answer(handler, fault.status, list(fault.headers.items()), fault.body)
        elif fault.kind == "hang":
            self.released.wait(60)

    def ask(self, handler: BaseHTTPRequestHandler, raw: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.target.hostname or "", self.target.port, timeout=30)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() not in ("host", "connection")}
            connection.request(handler.command, handler.path, raw, headers)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def answer(self, handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        handler.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                handler.send_header(name, value)
        if status != 204:
            handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(body)

    def __enter__(self) -> Proxy:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
