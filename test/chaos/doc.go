// Package chaos tests nod under faults. It runs nod's processes and three nats-servers, with agents and
// approvers as the load. Meanwhile it kills and suspends processes, partitions the network, and steps
// clocks. Finally it checks the complete history of all requests. See docs/chaos.md.
package chaos
