package hook

import "time"

const (
	shortestHostTimeout = 60 * time.Second
	margin              = 30 * time.Second
	withdrawWithin      = 5 * time.Second
)

func (o Options) hostTimeout() time.Duration {
	if o.HostTimeout <= 0 {
		return shortestHostTimeout
	}
	return o.HostTimeout
}

func (o Options) deadline() time.Duration {
	return max(o.hostTimeout()-margin, o.hostTimeout()/2)
}

// withdrawWithin returns how long the hook may take to withdraw a request after its reply. The hook must
// end before the host's timeout, because the host may ignore the reply of a hook that still runs then.
func (o Options) withdrawWithin() time.Duration {
	return min(withdrawWithin, (o.hostTimeout()-o.deadline())/2)
}
