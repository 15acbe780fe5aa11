// Package chaos is the fault harness. It runs nod's processes and three nats-servers
// under kills, stops, partitions and clock steps, with agents and approvers as load,
// and then checks the whole history of requests. See docs/chaos.md.
package chaos
