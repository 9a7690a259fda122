package audit

import "testing"

// Files without any alerting rule do not say that nothing alerts. A cluster that
// was read does.
func TestFilesWithoutAlertsSayNothingOfThem(t *testing.T) {
	const gateway = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm-gateway, namespace: llm}
spec: {template: {spec: {containers: [{name: main, image: "ghcr.io/berriai/litellm:v1.80.0"}]}}}`
	list := objects(t, gateway)
	r := run1(t, Input{Objects: list}, Options{Checks: []string{"OBS-001", "OBS-002"}})
	if len(r.Findings) != 0 || len(r.Open) != 2 || r.Open[0].Reason != NoLiveData || r.Coverage.Pass != 0 || r.Coverage.Percent != 100 {
		t.Errorf("files: %+v, %+v", r.Findings, r.Open)
	}
	list[0].Origin.Live = true
	r = run1(t, Input{Objects: list}, Options{Checks: []string{"OBS-001", "OBS-002"}})
	if len(r.Findings) != 2 || len(r.Open) != 0 {
		t.Errorf("a cluster: %+v, %+v", r.Findings, r.Open)
	}
}
