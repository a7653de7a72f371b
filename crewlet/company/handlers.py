"""The handlers of a file are read: one of the kinds that there are, each by its own rules."""

from __future__ import annotations

import re
from typing import Final

from crewlet.company.connections import url_fault
from crewlet.company.endpoint import BASE_URL, REQUEST_TIMEOUT_S, ROUNDS, Endpoint
from crewlet.company.model import HandlerSpec
from crewlet.company.problems import Report
from crewlet.company.record import Record

KINDS: Final = ("python", "command", "openai")

_PYTHON: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_KEY: Final = re.compile(r"[!-~]+")


def read_handler(record: Record, report: Report) -> HandlerSpec | None:
    """The handler of a role or of the company, None where it has none of its own."""
    handler = record.record("handler")
    if handler is None:
        return None
    python, command = handler.line("python"), handler.lines("command")
    stated = [kind for kind in KINDS if handler.has(kind)]
    if len(stated) != 1:
        found = (
            f"{' and '.join(f'`{kind}`' for kind in stated)} stand here"
            if stated
            else ("none stands here")
        )
        report.add(
            handler.mark,
            handler.path,
            f"one of `python`, `command` and `openai` is needed; {found}",
        )
    elif python and _PYTHON.fullmatch(python) is None:
        report.add(
            *handler.at("python"),
            f"{handler.written('python')} names no function; write `module:function`",
        )
    elif handler.has("command") and not command and "command" in handler.values:
        report.add(*handler.at("command"), "the command is empty; its first word is the program")
    endpoint = handler.record("openai")
    timeout_s = handler.number("timeout_s", HandlerSpec().timeout_s)
    return HandlerSpec(
        python=python,
        command=command,
        openai=None if endpoint is None else _endpoint(endpoint, report),
        timeout_s=float(timeout_s),
    )


def _endpoint(record: Record, report: Report) -> Endpoint:
    url, key = record.line("base_url"), record.secret("key")
    if url and (fault := url_fault(url, BASE_URL)):
        report.add(*record.at("base_url"), f"{record.written('base_url')} {fault}")
    if key is not None and _KEY.fullmatch(key.reveal()) is None:
        report.add(*record.at("key"), "the key holds characters that no key of an API has")
    temperature = float(record.number("temperature", 0)) if record.has("temperature") else None
    return Endpoint(
        model=record.line("model"),
        base_url=url or BASE_URL,
        key=key,
        system=record.line("system").strip(),
        temperature=temperature,
        request_timeout_s=float(record.number("request_timeout_s", REQUEST_TIMEOUT_S)),
        rounds=int(record.number("rounds", ROUNDS)),
    )
