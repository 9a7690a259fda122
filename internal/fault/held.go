package fault

// The reasons of refusals that an operator has ordered. They are told to callers as the
// code of the error too: what failed is nobody's fault.
const (
	ReasonDrained    = "drained"     // every target of the model is taken out of use
	ReasonForcedOpen = "forced_open" // every target of the model is held open
	ReasonShed       = "shed"        // requests of this priority are refused
)

// Ordered reports such a reason.
func Ordered(reason string) bool {
	return reason == ReasonDrained || reason == ReasonForcedOpen || reason == ReasonShed
}
