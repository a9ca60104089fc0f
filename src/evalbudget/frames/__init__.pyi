from ._columns import COLUMNS as COLUMNS
from ._columns import Column as Column
from ._scores import Scores as Scores
from ._scores import from_frame as from_frame
from ._scores import read as read
