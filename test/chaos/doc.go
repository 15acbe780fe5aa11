// Package chaos is the fault harness: nod's processes and three nats-servers
// under kills, stops, partitions and clock steps, with agents and people beside
// them whose whole history is checked afterwards. See docs/chaos.md.
package chaos
