package wake

import "crypto/tls"

// Trust makes the carrier accept the certificates of this configuration.
func (c *Carrier) Trust(config *tls.Config) { c.mailer.tls = config }
