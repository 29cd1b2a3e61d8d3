"""What every adapter needs, so that none has to write it again."""

from qak_core._redaction import redact, redact_credentials
from qak_core.authoring.blocking import BlockingPool, run_blocking
from qak_core.authoring.error_table import ErrorTable
from qak_core.authoring.fan_out import FanOut, fan_out, interleave
from qak_core.authoring.filters import Comparison, Compound, Filter, all_of, matches, parse_filter
from qak_core.authoring.identity import stable_id, unique_ids
from qak_core.authoring.metadata import flatten_metadata, plain_value
from qak_core.authoring.settings import Secret, read_settings

__all__ = [
    "BlockingPool",
    "Comparison",
    "Compound",
    "ErrorTable",
    "FanOut",
    "Filter",
    "Secret",
    "all_of",
    "fan_out",
    "flatten_metadata",
    "interleave",
    "matches",
    "parse_filter",
    "plain_value",
    "read_settings",
    "redact",
    "redact_credentials",
    "run_blocking",
    "stable_id",
    "unique_ids",
]
