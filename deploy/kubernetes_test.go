package deploy_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests below read the manifests as text. They check names that the service must know, and settings that protect
// a pod. `make lint-deploy` builds the manifests with kustomize and validates them against the schemas of Kubernetes.

// manifest has the parts of a Kubernetes object that the tests use.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Schedule          string
		ConcurrencyPolicy string `yaml:"concurrencyPolicy"`
		JobTemplate       struct {
			Spec struct {
				ActiveDeadlineSeconds int `yaml:"activeDeadlineSeconds"`
				Template              struct{ Spec podSpec }
			}
		} `yaml:"jobTemplate"`
		Template    struct{ Spec podSpec }
		MinReplicas int      `yaml:"minReplicas"`
		PolicyTypes []string `yaml:"policyTypes"`
	}
	Automount *bool `yaml:"automountServiceAccountToken"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

type podSpec struct {
	ServiceAccountName string `yaml:"serviceAccountName"`
	Automount          *bool  `yaml:"automountServiceAccountToken"`
	Grace              int    `yaml:"terminationGracePeriodSeconds"`
	SecurityContext    struct {
		RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
		RunAsUser      int                   `yaml:"runAsUser"`
		SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	TopologySpread []any `yaml:"topologySpreadConstraints"`
	Containers     []struct {
		Name, Image     string
		Args            []string
		Env             []struct{ Name, Value string }
		Ports           []struct{ Name string }
		LivenessProbe   probe `yaml:"livenessProbe"`
		ReadinessProbe  probe `yaml:"readinessProbe"`
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
	}
	Volumes []struct {
		Name   string
		Secret struct {
			SecretName string `yaml:"secretName"`
		}
	}
}

// manifests returns the objects in the files that the base's kustomization lists, by kind and name.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	const base = "kubernetes/base/"
	var list struct{ Resources []string }
	readYAML(t, base+"kustomization.yaml", &list)
	files, err := filepath.Glob(base + "*.yaml")
	assert.True(t, err == nil && len(files) == len(list.Resources)+1,
		"%d files, %d of them listed, %v", len(files)-1, len(list.Resources), err)
	out := map[string]manifest{}
	for _, name := range list.Resources {
		var m manifest
		readYAML(t, base+name, &m)
		out[m.Kind+"/"+m.Metadata.Name] = m
	}
	return out
}

// pods returns the pod specifications of the objects that have one.
func pods(all map[string]manifest) map[string]podSpec {
	out := map[string]podSpec{}
	for name, m := range all {
		switch m.Kind {
		case "Deployment", "Job":
			out[name] = m.Spec.Template.Spec
		case "CronJob":
			out[name] = m.Spec.JobTemplate.Spec.Template.Spec
		}
	}
	return out
}

func TestKubernetes_Objects_Complete(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	for _, name := range []string{
		"Deployment/quotasvc", "Service/quotasvc", "PodDisruptionBudget/quotasvc", "HorizontalPodAutoscaler/quotasvc", "NetworkPolicy/quotasvc",
		"ServiceAccount/quotasvc", "Job/quotasvc-migrate", "CronJob/quotasvc-roll", "CronJob/quotasvc-verify", "CronJob/quotasvc-partitions",
		"CronJob/quotasvc-seal", "CronJob/quotasvc-archive",
	} {
		_, ok := all[name]
		assert.True(t, ok, "there is no %s", name)
	}
	for name, m := range all {
		if m.Kind == "CronJob" && (m.Spec.ConcurrencyPolicy != "Forbid" || m.Spec.JobTemplate.Spec.ActiveDeadlineSeconds == 0 || len(strings.Fields(m.Spec.Schedule)) != 5) {
			t.Errorf("%s may run twice at once, or for ever: %+v", name, m.Spec)
		}
	}
	a := all["ServiceAccount/quotasvc"].Automount
	assert.True(t, a != nil && !*a, "the service account has a token")
	assert.Equal(t, []string{"Ingress", "Egress"}, all["NetworkPolicy/quotasvc"].Spec.PolicyTypes,
		"the network policy is about")
}

func TestKubernetes_Pods_NoRootNoWritesNoToken(t *testing.T) {
	t.Parallel()
	user := readDockerfile(t).user
	found := pods(manifests(t))
	assert.Len(t, found, 7, "pods")
	for name, p := range found {
		assert.True(t, p.SecurityContext.RunAsNonRoot && user == fmt.Sprintf("%[1]d:%[1]d", p.SecurityContext.RunAsUser) &&
			p.SecurityContext.SeccompProfile.Type == "RuntimeDefault", "%s: %+v; the image's user is %s", name, p.SecurityContext, user)
		assert.True(t, p.ServiceAccountName == "quotasvc" && p.Automount != nil && !*p.Automount,
			"%s has a token of %q", name, p.ServiceAccountName)
		for _, c := range p.Containers {
			s := c.SecurityContext
			assert.True(t, s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation && s.ReadOnlyRootFilesystem &&
				slices.Equal(s.Capabilities.Drop, []string{"ALL"}), "%s: %+v", name, s)
			assert.True(t, c.Resources.Requests["cpu"] != "" && c.Resources.Requests["memory"] != "" &&
				c.Resources.Limits["memory"] != "", "%s: %+v", name, c.Resources)
		}
	}
}

func TestKubernetes_CommandsSettings_Exist(t *testing.T) {
	t.Parallel()
	for name, p := range pods(manifests(t)) {
		c := p.Containers[0]
		subcommands, flags := command(c.Args)
		text := help(t, subcommands...)
		for _, flag := range flags {
			assert.True(t, regexp.MustCompile(`(^|[ ,])`+flag+`\b`).MatchString(text),
				"%s: quotasvc %s has no flag %s", name, strings.Join(subcommands, " "), flag)
		}
		for _, e := range c.Env {
			assert.False(t, strings.HasPrefix(e.Name, "QUOTASVC_") && !strings.Contains(text, e.Name),
				"%s: quotasvc %s has no setting %s", name, strings.Join(subcommands, " "), e.Name)
			for _, secret := range []string{"_KEY", "_URL", "PASSWORD"} {
				assert.False(t, strings.HasSuffix(e.Name, secret), "%s: %s is in the environment", name, e.Name)
			}
		}
		// Some commands need the role that owns the tables. Only these commands have the secret of this role.
		owner := slices.Contains([]string{"migrate", "seal", "archive"}, subcommands[0])
		if secret := p.Volumes[0].Secret.SecretName; (secret == "quotasvc-owner") != owner {
			t.Errorf("%s, quotasvc %s, has the secret %s", name, strings.Join(subcommands, " "), secret)
		}
	}
}

func TestKubernetes_Service_ProbesStopsScales(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	p := all["Deployment/quotasvc"].Spec.Template.Spec
	c := p.Containers[0]
	assert.True(t, c.LivenessProbe.HTTPGet.Path == "/livez" && c.ReadinessProbe.HTTPGet.Path == "/readyz" && c.LivenessProbe.HTTPGet.Port == "ops" &&
		c.ReadinessProbe.HTTPGet.Port == "ops", "probes %+v, %+v", c.LivenessProbe, c.ReadinessProbe)
	assert.NotEmpty(t, p.TopologySpread, "all instances may be on one node")
	// The process must end by itself before Kubernetes kills it: after at most the drain delay plus the stop timeout.
	var total time.Duration
	for _, flag := range []string{"--drain-delay", "--stop-timeout"} {
		m := regexp.MustCompile(flag + `=(\w+)`).FindStringSubmatch(help(t, "serve"))
		require.NotNil(t, m, "serve --help shows no default of %s", flag)
		d, err := time.ParseDuration(m[1])
		require.NoError(t, err)
		total += d
	}
	grace := time.Duration(p.Grace) * time.Second
	assert.True(t, grace >= total+5*time.Second, "killed after %s, stopping takes up to %s", grace, total)
	replicas := ""
	for _, e := range c.Env {
		if e.Name == "QUOTASVC_REPLICAS" {
			replicas = e.Value
		}
	}
	if minimum := all["HorizontalPodAutoscaler/quotasvc"].Spec.MinReplicas; replicas != "3" || minimum != 3 {
		t.Errorf("QUOTASVC_REPLICAS is %s, the autoscaler's minimum %d", replicas, minimum)
	}
}
