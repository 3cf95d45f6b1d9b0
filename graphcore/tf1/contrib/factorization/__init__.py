"""`tf.contrib.factorization`: clusters by k-means."""

from graphcore.tf1.contrib.factorization.distances import COSINE_DISTANCE, SQUARED_EUCLIDEAN_DISTANCE
from graphcore.tf1.contrib.factorization.kmeans import KMeans
from graphcore.tf1.contrib.factorization.starts import KMC2_INIT, KMEANS_PLUS_PLUS_INIT, RANDOM_INIT

__all__ = ["COSINE_DISTANCE", "KMC2_INIT", "KMEANS_PLUS_PLUS_INIT", "RANDOM_INIT", "SQUARED_EUCLIDEAN_DISTANCE", "KMeans"]
