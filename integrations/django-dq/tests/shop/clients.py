"""Clients that OPTIONS name by their paths."""

import os

import redis


def named() -> redis.Redis:
    return redis.Redis.from_url(os.environ["DQ_NAMED"], client_name="ours")


def of_cluster() -> redis.RedisCluster:
    return redis.RedisCluster.from_url(os.environ["DQ_CLUSTER"])
