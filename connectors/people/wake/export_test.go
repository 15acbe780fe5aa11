package wake

import (
	"crypto/tls"
	"time"
)

// Trust makes the carrier accept the certificates of this configuration.
func (c *Carrier) Trust(config *tls.Config) { c.mailer.tls = config }

// RetryIn calls retryIn.
func RetryIn(text string, since time.Duration) time.Duration { return retryIn(text, since) }
