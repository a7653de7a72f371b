"""The node's HTTP face: webhooks in, health out."""

from crewlet.web.app import make_app
from crewlet.web.edge import Edge, Limits
from crewlet.web.mattermost_socket import Ear, listening
from crewlet.web.server import WebServer

__all__ = ["Ear", "Edge", "Limits", "WebServer", "listening", "make_app"]
