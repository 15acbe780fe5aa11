"""The program of the tests: it makes one call of the client, checks each HTTP exchange against the OpenAPI
document of the server, and prints the result as one line of JSON."""

import dataclasses
import json
import os
import re
import sys
import urllib.parse
import urllib.request

from nod_client import Call, Nod, NodError, NotAllowed

URL = os.environ["NOD_HTTP"]
with urllib.request.urlopen(URL + "/openapi.json") as response:
    DOCUMENT = json.load(response)


class Checked(Nod):
    def _call(self, method, path, body=None, timeout=30):
        url = urllib.parse.urlsplit(path)
        template = re.sub(r"^(/api/v1/requests/).+", r"\1{id}", url.path)
        described = DOCUMENT["paths"][template][method.lower()]
        for name in body or {}:
            assert name in DOCUMENT["components"]["schemas"]["request"]["properties"], name
        for name in urllib.parse.parse_qs(url.query):
            assert any(p["in"] == "query" and p["name"] == name for p in described["parameters"]), name
        try:
            status, value = super()._call(method, path, body, timeout)
        except NodError as err:
            assert err.status == 0 or str(err.status) in described["responses"], err.status
            raise
        if body:
            given.get("input", {})["later"] = True  # the app changes its input while it waits
        assert str(status) in described["responses"], status
        return status, value


given = json.loads(sys.argv[2])


def main(what):
    nod = Checked(os.environ["NOD_TOKEN"], given["session"], URL)
    call = Call(given.get("toolName"), given.get("input", {}), given.get("toolCallId"), given.get("id"))
    try:
        if what == "ask":
            out = nod.ask(call)
        elif what == "abort":
            out = nod.ask(call, timeout=given["after"] / 1000)
        elif what == "submit":
            out = {"id": nod.submit(call)[0]}
        elif what == "status":
            out = nod.status(given["id"], wait=given.get("wait", 0))
        elif what == "notices":
            out = {"notices": [dataclasses.asdict(n) for n in nod.notices(wait=given["wait"])]}
        elif what == "withdraw":
            out = nod.withdraw(given["id"], reason="not needed")
        else:
            out = {"ran": nod.guard(given["toolName"], lambda input: input)(given["input"], tool_call_id=given["toolCallId"])}
    except (NodError, NotAllowed, TimeoutError, TypeError) as err:
        out = {"error": type(err).__name__, "code": getattr(err, "code", None), "message": str(err), "refused": isinstance(err, NotAllowed)}
    print(json.dumps(dataclasses.asdict(out) if dataclasses.is_dataclass(out) else out))


main(sys.argv[1])
