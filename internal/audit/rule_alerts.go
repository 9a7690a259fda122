package audit

type alerts struct{}

func findAlerts(*Graph) alerts { return alerts{} }
