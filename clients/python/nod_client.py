"""The client of nod's HTTP API. It uses the standard library alone.

Every error denies: only a result with ``allowed`` true lets the app act.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Call", "Nod", "NodError", "NotAllowed", "Notice", "Result"]

_WAIT_SECONDS = 30  # one GET waits this long for a decision
_FIRST_RETRY, _LAST_RETRY = 0.25, 5.0  # seconds
_OWN_CWD = "cwd, in the input"
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class NodError(Exception):
    """An error of nod or of the connection to it. ``code`` is nod's error code, UNREACHABLE or BAD_RESPONSE."""

    def __init__(self, code: str, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.code, self.status = code, status


class NotAllowed(Exception):
    """Raised by a guarded tool that may not run. Its text is for the model."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.message)
        self.result = result


@dataclass(frozen=True)
class Result:
    """The end of a request."""

    allowed: bool
    id: str
    outcome: str  # allowed, denied, cancelled, timed_out or withdrawn
    message: str  # the approver's words; for a refusal a sentence for the model
    by: str
    edited: bool = False  # an approver or a setting changed the input
    input: dict[str, Any] | None = None  # the input to run, and nothing else
    option: str | None = None


@dataclass(frozen=True)
class Call:
    """A call that nod decides. The request's id is made from ``tool_call_id``, so that a restarted app
    that asks about the same call finds its request, and its decision."""

    tool_name: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    tool_call_id: str | None = None
    id: str | None = None
    kind: str = "tool_call"
    action_type: str = "other"
    title: str | None = None
    reason: str | None = None
    options: list[dict[str, Any]] | None = None
    permissions: list[str] | None = None
    timeout_seconds: int | None = None
    cwd: str | None = None  # the directory of a command; never take it from the model, because rules rely on it


@dataclass(frozen=True)
class Notice:
    """News for the agent. Its text may contain words of another agent, in quotation marks."""

    kind: str  # shown, undeliverable, asked, decided or gate
    text: str
    id: str | None = None  # the request that it is about


class Nod:
    """Asks nod for one session. ``token`` is that of the file that nod http names."""

    def __init__(self, token: str, session: str, url: str = "http://127.0.0.1:4282", *, agent_name: str | None = None,
                 project: str | None = None, session_label: str | None = None) -> None:
        if not token or not session:
            raise ValueError("nod: the token and the session must not be empty")
        self._url, self._token, self._session = url.rstrip("/"), token, session
        self._defaults = {"agent_name": agent_name, "project": project, "session_label": session_label}
        self._open = urllib.request.build_opener(_NoRedirect).open

    def ask(self, call: Call, *, timeout: float | None = None) -> Result:
        """Asks nod and waits for the decision, across restarts of nod and failures of the network. After
        ``timeout`` seconds it withdraws the request and raises TimeoutError. It raises NodError if nod
        refuses the request, such as with the code UNDELIVERABLE if no approver can be asked."""
        call = _copied(call)
        request = self._request(call)
        end = None if timeout is None else time.monotonic() + timeout
        asked, retry = False, _FIRST_RETRY
        try:
            while True:
                left = _left(end)
                try:
                    if asked:
                        decision = self._await(request, min(_WAIT_SECONDS, left))
                    else:
                        decision = self._submit(request)[0]
                        asked = True
                    if decision is not None:
                        return _result(decision, request, call)
                    retry = _FIRST_RETRY
                except NodError as err:
                    if err.code not in ("UNREACHABLE", "UNAVAILABLE"):
                        raise
                    time.sleep(min(retry, _left(end)))
                    retry = min(2 * retry, _LAST_RETRY)
        except (TimeoutError, KeyboardInterrupt):
            try:  # the request may be stored although its receipt did not arrive
                self.withdraw(request["pending_id"], reason="the app stopped waiting")
            except NodError:
                pass  # the request ends at its deadline
            raise

    def guard(self, name: str, run: Callable[[dict[str, Any]], Any], **fields: Any) -> Callable[..., Any]:
        """Returns a tool that asks first and runs with the allowed input, or raises NotAllowed."""

        def guarded(input: Mapping[str, Any], *, tool_call_id: str | None = None) -> Any:
            result = self.ask(Call(tool_name=name, input=input, tool_call_id=tool_call_id, **fields))
            if not result.allowed or result.input is None:
                raise NotAllowed(result)
            return run(result.input)

        return guarded

    def submit(self, call: Call) -> tuple[str, Result | None]:
        """Asks once and returns at once: the request's id, and the result if nod has decided."""
        call = _copied(call)
        request = self._request(call)
        decision, _ = self._submit(request)
        return request["pending_id"], None if decision is None else _result(decision, request, call)

    def status(self, id: str, *, wait: float = 0) -> Result | None:
        """Returns the result of a request, or None if it is pending after ``wait`` seconds (at most 600)."""
        request = self._named(id)
        decision = self._await(request, wait)
        return None if decision is None else _result(decision, request, None)

    def withdraw(self, id: str, *, reason: str | None = None) -> Result:
        """Withdraws a request and returns its result: withdrawn, or the earlier decision."""
        request = self._named(id)
        query = "?" + urllib.parse.urlencode({"reason": reason}) if reason else ""
        _, body = self._call("DELETE", _path(request) + query)
        return _result(body, request, None)

    def notices(self, *, wait: float = 0) -> list[Notice]:
        """Returns the session's notices, oldest first, which nod then forgets.

        They are those that nod has kept or, if there are none, the next ones within ``wait`` seconds
        (at most 600). A notice decides nothing.
        """
        query = urllib.parse.urlencode({"session_id": self._session, "wait": f"{max(0, int(wait * 1000))}ms"})
        status, body = self._call("GET", "/api/v1/notices?" + query, timeout=wait + 30)
        return [] if status == 204 else [Notice(n["kind"], n["text"], n.get("pending_id")) for n in body["notices"]]

    def _named(self, id: str) -> dict[str, Any]:
        return {"session_id": self._session, "pending_id": _id_of(id)}

    def _request(self, call: Call) -> dict[str, Any]:
        fields = {
            **self._defaults, **self._named(call.id or call.tool_call_id or str(uuid.uuid4())), "kind": call.kind,
            "title": call.title or (f"Use {call.tool_name}" if call.tool_name else "Permission request"),
            "tool_name": call.tool_name, "action_type": call.action_type, "action_details": _details(call),
            "tool_call_id": call.tool_call_id if call.tool_call_id and len(call.tool_call_id) <= 256 else None,
            "reason": call.reason, "options": call.options, "permissions": call.permissions, "timeout_seconds": call.timeout_seconds,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _submit(self, request: dict[str, Any]) -> tuple[Any, Any]:
        status, body = self._call("POST", "/api/v1/requests", request)
        if status not in (200, 202):
            raise NodError("BAD_RESPONSE", f"nod: unexpected status {status}", status)
        return (body, None) if status == 200 else (None, body)

    def _await(self, request: dict[str, Any], wait: float) -> Any:
        status, body = self._call("GET", f"{_path(request)}?wait={max(0, int(wait * 1000))}ms", timeout=wait + 30)
        return None if status == 204 else body

    def _call(self, method: str, path: str, body: Any = None, timeout: float = 30) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._token}"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body, allow_nan=False).encode()
        request = urllib.request.Request(self._url + path, data=data, headers=headers, method=method)
        try:
            with self._open(request, timeout=timeout) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as err:
            status, text = err.code, err.read()
        except (OSError, http.client.HTTPException) as err:
            raise NodError("UNREACHABLE", f"nod: {self._url} cannot be reached: {err}") from err
        try:
            value = json.loads(text) if text.strip() else None
        except ValueError as err:
            raise NodError("BAD_RESPONSE", f"nod: status {status}: the response is not JSON", status) from err
        if not 200 <= status < 300:
            value = value if isinstance(value, dict) else {}
            raise NodError(value.get("code", "BAD_RESPONSE"), value.get("message", f"nod: status {status}"), status)
        return status, value


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None  # a redirection could lead the token to another server


def _left(end: float | None) -> float:
    if end is None:
        return float(_WAIT_SECONDS)
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("nod: no decision in time")
    return left


def _path(request: Mapping[str, Any]) -> str:
    return f"/api/v1/requests/{request['session_id']}.{request['pending_id']}"


def _id_of(id: str) -> str:
    """The same id for the same tool call, so that a restarted app asks about the same request."""
    if _ID.fullmatch(id):
        return id
    return "h-" + hashlib.sha256(id.encode()).hexdigest()[:32]


def _copied(call: Call) -> Call:
    """The call with the input as nod gets it, so that a change by the app during the wait does not run."""
    if not isinstance(call.input, Mapping):
        raise TypeError("nod: the input is not a mapping")
    return replace(call, input=json.loads(json.dumps(dict(call.input), allow_nan=False)))


def _details(call: Call) -> dict[str, Any]:
    """nod reads the field "cwd" as the directory of the call, so only the app may set it."""
    details = dict(call.input)
    if "cwd" in details:
        if _OWN_CWD in details:
            raise ValueError(f'nod: the input has a field "{_OWN_CWD}", which nod reserves')
        details[_OWN_CWD] = details.pop("cwd")
    if call.cwd is not None:
        details["cwd"] = call.cwd
    return details


def _input_of(edited: Any, cwd: str | None) -> dict[str, Any] | None:
    """Reverses _details for an edited input; None if the edit cannot be carried out."""
    if not isinstance(edited, dict) or edited.get("cwd") != cwd:
        return None
    rest = {name: value for name, value in edited.items() if name not in ("cwd", _OWN_CWD)}
    if _OWN_CWD in edited:
        rest["cwd"] = edited[_OWN_CWD]
    return rest


def _result(decision: Any, request: Mapping[str, Any], call: Call | None) -> Result:
    """Converts a decision. Only an allow about exactly this request allows."""
    if not isinstance(decision, dict):
        raise NodError("BAD_RESPONSE", "nod: the response is no decision")
    id, outcome = request["pending_id"], decision.get("outcome")
    about = decision.get("session_id") == request["session_id"] and decision.get("pending_id") == id
    by, message = decision.get("by", {}).get("name", ""), decision.get("message", "")
    if about and outcome == "allowed" and decision.get("option_kind") in (None, "", "allow_once", "allow_always"):
        edit = decision.get("updated_input")
        input = None if call is None else dict(call.input)
        if edit is not None:
            cwd = edit.get("cwd") if call is None and isinstance(edit, dict) else call.cwd if call else None
            input = _input_of(edit, cwd)
            if input is None:
                return Result(False, id, "denied", "Allowed with an edit that cannot be carried out.", by)
        return Result(True, id, "allowed", message, by, edit is not None, input, decision.get("option_id"))
    outcome = outcome if about and outcome != "allowed" and isinstance(outcome, str) else "denied"
    words = {"denied": "Denied", "timed_out": "Timed out", "withdrawn": "Withdrawn", "cancelled": "Dismissed without an answer"}
    text = words.get(outcome, "Not allowed") + (f" by {by}" if by and outcome == "denied" else "")
    return Result(False, id, outcome, f"{text}: {message}" if message else f"{text}.", by)
