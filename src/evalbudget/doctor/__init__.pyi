from ._case import Case as Case
from ._check import Check as Check
from ._check import Finding as Finding
from ._check import Kind as Kind
from ._diagnosis import Diagnosis as Diagnosis
from ._diagnosis import diagnose as diagnose
from .checks import CHECKS as CHECKS
