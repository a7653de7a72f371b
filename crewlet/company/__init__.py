"""What a company is, and how its file is read: `load_company`, `check_company`, `Company`."""

from crewlet.company.model import (
    AGENT_NAMESPACE,
    Company,
    Contact,
    GithubIntegration,
    HandlerSpec,
    Integrations,
    Route,
    Seat,
    Unit,
    agent_id,
)
from crewlet.company.secret import Secret

__all__ = [
    "AGENT_NAMESPACE",
    "Company",
    "Contact",
    "GithubIntegration",
    "HandlerSpec",
    "Integrations",
    "Route",
    "Seat",
    "Secret",
    "Unit",
    "agent_id",
]
