from .api import pairwise as pairwise
