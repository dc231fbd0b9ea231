"""Clients of Kafka, Kafka Connect and its metrics, and what all clients need: access over HTTP, and their errors.

A client's own exceptions end here; nothing in this room knows what a trial, a sink or a plan is."""
