package contain

import "time"

func (v *view) review(before time.Time, r *Report) {}
