// Package chaos tests nod under faults. It runs nod's processes and three nats-servers. Agents and
// approvers act as the load, while processes are killed and suspended, the network is partitioned, and
// clocks are stepped. Finally the tests check the complete history of all requests. See docs/chaos.md.
package chaos
