package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// DescribeVotes returns the votes so far and the number of people who must allow a request, as
// people see them: "1 of 2: Ann".
func DescribeVotes(votes []Vote, needed int) string {
	text := fmt.Sprintf("%d of %d", len(votes), needed)
	if len(votes) > 0 {
		text += ": " + strings.Join(Voters(votes), ", ")
	}
	return text
}

// Voters returns the names of the people who voted.
func Voters(votes []Vote) []string {
	names := make([]string, len(votes))
	for i := range votes {
		names[i] = votes[i].Name
	}
	return names
}

// NeedsVotes reports whether a rule of permissions.confirm needs engines that know votes.
func (s *Settings) NeedsVotes() bool {
	return slices.ContainsFunc(s.Permissions.Confirm, func(c Confirm) bool { return c.Newer() })
}
