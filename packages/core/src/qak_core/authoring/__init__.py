"""What every adapter needs, so that none has to write it again."""

from qak_core._redaction import redact, redact_credentials
from qak_core.authoring.answering import passage_metadata
from qak_core.authoring.blocking import BlockingPool, run_blocking
from qak_core.authoring.error_table import ErrorTable
from qak_core.authoring.factories import load_targets, target_problems
from qak_core.authoring.fan_out import FanOut, fan_out, interleave
from qak_core.authoring.filters import Comparison, Compound, Filter, all_of, matches, parse_filter
from qak_core.authoring.following import follow
from qak_core.authoring.identity import stable_id, unique_ids
from qak_core.authoring.lifetime import HealthCheck, Lifetime
from qak_core.authoring.metadata import flatten_metadata, plain_text, plain_value, value_at
from qak_core.authoring.options import option_problems
from qak_core.authoring.passages import SOURCE_FIELDS, Reading, ScoreKind, read_passages
from qak_core.authoring.routing import answer, route
from qak_core.authoring.scope import Scope
from qak_core.authoring.settings import Secret, read_settings
from qak_core.authoring.vendor_errors import VendorErrors

__all__ = [
    "SOURCE_FIELDS",
    "BlockingPool",
    "Comparison",
    "Compound",
    "ErrorTable",
    "FanOut",
    "Filter",
    "HealthCheck",
    "Lifetime",
    "Reading",
    "Scope",
    "ScoreKind",
    "Secret",
    "VendorErrors",
    "all_of",
    "answer",
    "fan_out",
    "flatten_metadata",
    "follow",
    "interleave",
    "load_targets",
    "matches",
    "option_problems",
    "parse_filter",
    "passage_metadata",
    "plain_text",
    "plain_value",
    "read_passages",
    "read_settings",
    "redact",
    "redact_credentials",
    "route",
    "run_blocking",
    "stable_id",
    "target_problems",
    "unique_ids",
    "value_at",
]
