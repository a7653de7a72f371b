"""What a company is, and how its file is read: `load_company`, `check_company`, `Company`."""

from crewlet.company.integrations import (
    GenericIntegration,
    Integration,
    Integrations,
    MattermostIntegration,
)
from crewlet.company.load import check_company, check_text, load_company, parse_company
from crewlet.company.model import (
    AGENT_NAMESPACE,
    Company,
    Contact,
    HandlerSpec,
    Placement,
    Route,
    Seat,
    Unit,
    agent_id,
)
from crewlet.company.node_file import (
    NODE_ROLES,
    ApiSettings,
    NodeIdentity,
    NodeSettings,
    check_node_settings,
    checked_settings,
    load_node_settings,
)
from crewlet.company.problems import FileRefused, Problem
from crewlet.company.schema import company_schema, node_schema
from crewlet.company.secret import Secret

__all__ = [
    "AGENT_NAMESPACE",
    "NODE_ROLES",
    "ApiSettings",
    "Company",
    "Contact",
    "FileRefused",
    "GenericIntegration",
    "HandlerSpec",
    "Integration",
    "Integrations",
    "MattermostIntegration",
    "NodeIdentity",
    "NodeSettings",
    "Placement",
    "Problem",
    "Route",
    "Seat",
    "Secret",
    "Unit",
    "agent_id",
    "check_company",
    "check_node_settings",
    "check_text",
    "checked_settings",
    "company_schema",
    "load_company",
    "load_node_settings",
    "node_schema",
    "parse_company",
]
