package agents

import "github.com/nodbus/nod/schemas"

// DescribeNotice returns a notice as one line for an agent or its user.
func DescribeNotice(n schemas.Notice) string { return "nod: " + n.Text }
