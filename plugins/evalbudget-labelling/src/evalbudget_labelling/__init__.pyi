from ._exporting import FORMATS as FORMATS
from ._exporting import export as export
from ._label_studio import LabelStudio as LabelStudio
from ._label_studio import Synced as Synced
from ._label_studio import sync as sync
from .page import PageApi as PageApi
from .page import PageServer as PageServer
