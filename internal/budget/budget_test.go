package budget

import "time"

var start = time.Unix(1_700_000_000, 0)
