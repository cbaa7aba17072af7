import Foundation
import TestSupport
import Testing
import Yams

/// The resources in config/kubernetes. scripts/check-deploy renders them and validates them against schemas.
@Suite("The resources for Kubernetes refer to one another") struct KubernetesTests {
    private typealias Resource = [String: Any]

    private static let folder = "config/kubernetes"

    private func kustomization() throws -> Resource {
        try #require(try Yams.load(yaml: Document("\(Self.folder)/kustomization.yaml").text) as? Resource)
    }

    /// All resources of the files, by kind.
    private func resources() throws -> [String: [Resource]] {
        let names = try FileManager.default.contentsOfDirectory(atPath: Document.root.appendingPathComponent(Self.folder).path)
        // Settings, a rule for the configuration of the adapter, and a change of the controller's configuration.
        let others = ["gifreel.yaml", "kustomization.yaml", "prometheus-adapter.yaml", "ingress-nginx.yaml"]
        var found: [String: [Resource]] = [:]
        for name in names.sorted() where !others.contains(name) {
            for document in try Yams.load_all(yaml: Document("\(Self.folder)/\(name)").text) {
                let resource = try #require(document as? Resource, "\(name)")
                found[try #require(resource["kind"] as? String), default: []].append(resource)
            }
        }
        return found
    }

    /// The value at a path of names, such as `spec.selector.matchLabels`.
    private func value<Value>(_ resource: Resource, _ path: String, as type: Value.Type = Value.self) throws -> Value {
        var value: Any = resource
        for name in path.split(separator: ".") { value = try #require((value as? Resource)?[String(name)], "\(path)") }
        return try #require(value as? Value, "\(path)")
    }

    private func pod() throws -> (labels: [String: String], ports: [String: Int]) {
        let set = try #require(try resources()["StatefulSet"]?.first)
        let containers = try value(set, "spec.template.spec.containers", as: [Resource].self)
        let ports = try value(try #require(containers.first), "ports", as: [Resource].self)
        return (
            try value(set, "spec.template.metadata.labels"),
            try Dictionary(uniqueKeysWithValues: ports.map { (try value($0, "name"), try value($0, "containerPort")) })
        )
    }

    @Test func kustomizeAppliesEveryFileButThePodMonitor() throws {
        let listed = try value(try kustomization(), "resources", as: [String].self)
        let names = try FileManager.default.contentsOfDirectory(atPath: Document.root.appendingPathComponent(Self.folder).path)
        let left = Set(names).subtracting(listed)
        #expect(
            left == [
                "gifreel.yaml", "kustomization.yaml", "prometheus-adapter.yaml", "podmonitor.yaml", "ingress-nginx.yaml",
            ])
        #expect(Set(listed).isSubset(of: names))
    }

    @Test(arguments: [
        ("Service", "spec.selector"), ("StatefulSet", "spec.selector.matchLabels"),
        ("PodDisruptionBudget", "spec.selector.matchLabels"), ("NetworkPolicy", "spec.podSelector.matchLabels"),
        ("PodMonitor", "spec.selector.matchLabels"),
    ])
    func selectorsSelectThePods(_ kind: String, _ path: String) throws {
        let labels = try pod().labels
        let found = try #require(try resources()[kind])
        for resource in found { #expect(try value(resource, path, as: [String: String].self) == labels) }
    }

    /// The kubelet refuses an image whose user is a name where only runAsNonRoot is set.
    @Test func theImageStatesTheUserOfThePodsByNumber() throws {
        let set = try #require(try resources()["StatefulSet"]?.first)
        let user = try value(set, "spec.template.spec.securityContext.runAsUser", as: Int.self)
        let image = try Document("Dockerfile").text
        #expect(image.contains("\nUSER \(user)\n"))
        #expect(image.contains("--uid \(user) "))
    }

    /// OpenShift runs a container as any user of root's group.
    @Test func theImageLetsTheGroupOfRootWriteTheCache() throws {
        let image = try Document("Dockerfile").text
        #expect(image.contains("install -d -o gifreel -g root -m 775 /var/cache/gifreel\n"))
    }

    /// One worker more than `transcode.workers` may run, and WebM takes one and a half times `limits.memory`.
    @Test func theContainerHasTheMemoryOfAllWorkers() throws {
        let set = try #require(try resources()["StatefulSet"]?.first)
        let container = try #require(try value(set, "spec.template.spec.containers", as: [Resource].self).first)
        let limit = try value(container, "resources.limits.memory", as: String.self)
        let gibibytes = try #require(limit.hasSuffix("Gi") ? Int(limit.dropLast(2)) : nil)
        let settings = try #require(try Yams.load(yaml: Document("\(Self.folder)/gifreel.yaml").text) as? Resource)
        let defaults = try #require(try Yams.load(yaml: Document("config/gifreel.yaml").text) as? Resource)
        let workers = try value(settings, "transcode.workers", as: Int.self)
        let texts: [String] = [try value(settings, "transcode.queue_bytes"), try value(defaults, "limits.memory")]
        let sizes = try texts.map { text in try #require(text.hasSuffix("MiB") ? Int(text.dropLast(3)) : nil) }
        #expect(gibibytes * 1024 >= 100 + sizes[0] + (workers + 1) * sizes[1] * 3 / 2)
    }

    @Test func portsAreThoseOfThePods() throws {
        let (resources, ports) = (try resources(), try pod().ports)
        for service in try #require(resources["Service"]) {
            for port in try value(service, "spec.ports", as: [Resource].self) {
                #expect(try ports[value(port, "targetPort")] != nil)
            }
        }
        let monitor = try #require(resources["PodMonitor"]?.first)
        for endpoint in try value(monitor, "spec.podMetricsEndpoints", as: [Resource].self) {
            #expect(try ports[value(endpoint, "port")] != nil)
        }
        let policy = try #require(resources["NetworkPolicy"]?.first)
        let rules = try value(policy, "spec.ingress", as: [Resource].self)
        let permitted = try rules.flatMap { try value($0, "ports", as: [Resource].self) }
        #expect(try permitted.map { try value($0, "port", as: String.self) } == Array(ports.keys))
    }

    @Test func theIngressLeadsToThePublicHost() throws {
        let resources = try resources()
        let ingress = try #require(resources["Ingress"]?.first)
        let rules = try value(ingress, "spec.rules", as: [Resource].self)
        let settings = try #require(try Yams.load(yaml: Document("\(Self.folder)/gifreel.yaml").text) as? Resource)
        let hosts = try rules.map { try value($0, "host", as: String.self) }
        #expect(try hosts.map { "https://" + $0 } == [value(settings, "server.public_url")])
        let services = try #require(resources["Service"])
        for path in try rules.flatMap({ try value($0, "http.paths", as: [Resource].self) }) {
            let name = try value(path, "backend.service.name", as: String.self)
            let service = try #require(try services.first { try value($0, "metadata.name") == name })
            let ports = try value(service, "spec.ports", as: [Resource].self).map { try value($0, "name", as: String.self) }
            #expect(try ports.contains(value(path, "backend.service.port.name")))
        }
    }

    /// ShippedFileTests has nginx read cluster.conf.
    @Test func theControllerCanChooseTheNodeByTheSourceAsTheBalancerDoes() throws {
        let patch = try #require(try Yams.load(yaml: Document("\(Self.folder)/ingress-nginx.yaml").text) as? Resource)
        let map = try value(patch, "data.http-snippet", as: String.self)
        #expect(try Document("config/nginx/cluster.conf").text.contains(map))
        #expect(map.hasPrefix("map $request_uri $gifreel_source {"))
        let documents = try [Document("\(Self.folder)/ingress.yaml"), Document("docs/operations.md")]
        for document in documents { #expect(document.text.contains("$gifreel_source"), "\(document)") }
    }

    /// The alerts go by this job and by instances that outlive a pod.
    @Test func thePodMonitorSetsTheLabelsOfTheAlerts() throws {
        let monitor = try #require(try resources()["PodMonitor"]?.first)
        let endpoints = try value(monitor, "spec.podMetricsEndpoints", as: [Resource].self)
        let rules = try endpoints.flatMap { try value($0, "relabelings", as: [Resource].self) }
        #expect(rules.contains { $0["targetLabel"] as? String == "job" && $0["replacement"] as? String == "gifreel" })
        #expect(rules.contains { $0["targetLabel"] as? String == "instance" })
    }

    /// The adapter publishes the metric of the HorizontalPodAutoscaler for the pods that these labels name. The operator sets them itself.
    @Test func theRulesWithoutTheOperatorSetTheLabelsOfTheAdapter() throws {
        let adapter = try #require(try Yams.load(yaml: Document("\(Self.folder)/prometheus-adapter.yaml").text) as? Resource)
        let rule = try #require(try value(adapter, "rules.custom", as: [Resource].self).first)
        let labels = try value(rule, "resources.overrides", as: Resource.self).keys
        let text = try Document("docs/operations.md").text
        #expect(Set(labels) == ["namespace", "pod"])
        for label in ["job", "instance"] + labels { #expect(text.contains("target_label: \(label)"), "\(label)") }
    }

    @Test func theIngressTakesBodiesAsTheBalancerDoes() throws {
        let ingress = try #require(try resources()["Ingress"]?.first)
        let annotations = try value(ingress, "metadata.annotations", as: [String: String].self)
        let size = try #require(annotations["nginx.ingress.kubernetes.io/proxy-body-size"])
        #expect(try Document("config/nginx/cluster.conf").text.contains("client_max_body_size \(size);"))
    }
}
