//go:build tools

// Package tools pins the TCP proxy that stands before a sink in trials with a fault of the network.
package tools

import _ "github.com/Shopify/toxiproxy/v2/cmd/server"
