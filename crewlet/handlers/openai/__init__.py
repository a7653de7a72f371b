"""A model behind an OpenAI-compatible endpoint as a handler: chat completions, and two tools."""

from crewlet.handlers.openai.handler import OpenAi

__all__ = ["OpenAi"]
