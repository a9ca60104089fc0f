from .task import pairwise as pairwise
