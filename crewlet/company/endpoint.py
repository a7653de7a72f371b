"""A model behind an OpenAI-compatible endpoint, as a company file names it, and its keys there."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from crewlet.company.key import Key
from crewlet.company.secret import Secret

BASE_URL: Final = "https://api.openai.com/v1"
REQUEST_TIMEOUT_S: Final = 120.0
ROUNDS: Final = 8


class Endpoint(Struct, frozen=True, kw_only=True):
    """`rounds` is how often the model may answer within one turn, `request_timeout_s` how long
    each of its answers may take. An endpoint without a key is asked without one."""

    model: str
    base_url: str = BASE_URL
    key: Secret | None = None
    system: str = ""
    temperature: float | None = None
    request_timeout_s: float = REQUEST_TIMEOUT_S
    rounds: int = ROUNDS


OPENAI: Final = {
    "base_url": Key(
        shape="line",
        default=BASE_URL,
        example="http://127.0.0.1:11434/v1",
        about="Where the endpoint is; `/chat/completions` comes after it.",
    ),
    "model": Key(shape="line", required=True, example="gpt-5-mini", about="The model's name."),
    "key": Key(
        shape="secret",
        example="${OPENAI_API_KEY}",
        about="The key of the API, always by way of an environment variable.",
    ),
    "system": Key(
        shape="text",
        example="Answer in German",
        about="What the model is told first, before who it is and what came in.",
    ),
    "temperature": Key(
        shape="number",
        default="the model's",
        minimum=0,
        maximum=2,
        example="0.2",
        about="How much chance is in the answer.",
    ),
    "request_timeout_s": Key(
        shape="number",
        default=f"{REQUEST_TIMEOUT_S:g}",
        minimum=0.01,
        maximum=1800,
        example="60",
        about="How many seconds one answer of the model may take.",
    ),
    "rounds": Key(
        shape="integer",
        default=str(ROUNDS),
        minimum=1,
        maximum=100,
        example="20",
        about="How often the model may answer within one turn.",
    ),
}
