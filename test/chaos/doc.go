// Package chaos tests nod under faults. It runs nod's processes and three nats-servers,
// with agents and approvers as load, under kills, stops, partitions and clock steps. Then
// it checks the whole history of requests. See docs/chaos.md.
package chaos
