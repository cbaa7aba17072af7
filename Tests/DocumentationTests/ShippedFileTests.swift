import Foundation
import TestSupport
import Testing

/// The files of `config/` that other programs read, checked by these programs.
@Suite("The shipped files are valid to the programs that read them") struct ShippedFileTests {
    static let nginx = ChildProcess.find("nginx")

    /// A directory with a certificate, in which a site finds all files that it names.
    private func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-site-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let openssl = try #require(ChildProcess.find("openssl"))
        let made = try ChildProcess(
            openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                "/CN=localhost",
                "-keyout", "\(folder.path)/key.pem", "-out", "\(folder.path)/cert.pem",
            ]
        ).finish()
        try #require(made.code == 0, "\(made.log)")
        return folder
    }

    /// Debian 12 has nginx 1.22 and Debian 13 has 1.26, which differ in how they want HTTP/2 to be written.
    @Test(.enabled(if: nginx != nil), arguments: ["gifreel.conf", "cluster.conf"])
    func nginxReads(_ name: String) throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let site = try Document("config/nginx/\(name)").text
            .replacingOccurrences(of: "/etc/ssl/certs/gifreel.pem", with: "\(folder.path)/cert.pem")
            .replacingOccurrences(of: "/etc/ssl/private/gifreel.key", with: "\(folder.path)/key.pem")
            .replacingOccurrences(of: "/var/cache/nginx", with: folder.path)
            .replacingOccurrences(of: "server node-", with: "server 127.0.0.")
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder.path)/\($0);" }
        let configuration = folder.appendingPathComponent("nginx.conf")
        try Data(site.utf8).write(to: folder.appendingPathComponent("site.conf"))
        try Data(
            """
            pid \(folder.path)/pid;
            events {}
            http { access_log off; \(temporary.joined(separator: " ")) include \(folder.path)/site.conf; }
            """.utf8
        ).write(to: configuration)
        let checked = try ChildProcess(try #require(Self.nginx), ["-t", "-e", "stderr", "-c", configuration.path]).finish()
        #expect(checked.code == 0, "\(checked.log)")
    }

    /// Returns what a pattern with one group finds in a file.
    private func found(_ pattern: String, _ file: String) throws -> [String] {
        try Document(file).text.matches(of: Regex(pattern, as: (Substring, Substring).self)).map { String($0.1) }
    }

    @Test func allAddressesOfASourceBelowAMountMeetOnOneNode() throws {
        let pattern = try #require(try found(#""~\*(\^\(\?<gifreel_path>.+)" \$"#, "config/nginx/cluster.conf").first)
        let rule = try Regex(pattern).ignoresCase()
        for (addresses, node) in [
            ("gif mp4 webm avif awebp jpg png webp json html auto gif.gif mp4?width=3", "/media/cats/1"),
            ("webp webp.mp4 webp.auto webp.json mov mov.mp4 apng apng.avif", "/media/a.b"), ("GIF JPG MP4", "/media/A"),
        ] {
            for address in addresses.split(separator: " ") {
                let match = try #require(try rule.firstMatch(in: "\(node).\(address)"), "\(address)")
                #expect(match["gifreel_path"]?.substring == node[...], "\(address)")
            }
        }
    }

    /// Uploads have one path, by which all would meet on one node. Their lengths differ.
    @Test func uploadsAreSpreadOverTheNodes() throws {
        let key = "$request_uri$http_content_length"
        #expect(try found(#"default (\$request_uri.*);"#, "config/nginx/cluster.conf") == [key])
        #expect(try found(#"upstream-hash-by: (.+)"#, "config/kubernetes/ingress.yaml") == [key])
    }

    /// What Safari, WebKitGTK, Chromium, Safari before AVIF, and others send for an image, and a client that refuses a format; with
    /// what Gifreel gets.
    static let negotiations = [
        (
            "image/webp,image/avif,image/jxl,image/heic,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5",
            "video/mp4,image/avif,image/webp,image/gif"
        ),
        ("image/webp,image/avif,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5", "image/avif,image/webp,image/gif"),
        ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", "image/avif,image/webp,image/gif"),
        ("image/webp,image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5", "video/mp4,image/webp,image/gif"),
        ("*/*", "image/gif"), ("", "image/gif"),
        ("video/mp4;q=0, image/avif;q=0.0, IMAGE/WEBP ; q=0.1", "image/webp,image/gif"),
    ]

    @Test(arguments: negotiations) func theSitePassesOnEachFormatThatABrowserNames(_ accept: String, _ wanted: String) throws {
        let site = try Document("config/nginx/gifreel.conf").text
        var types = try #require(try found(#"set \$wanted_types (.+);"#, "config/nginx/gifreel.conf").first)
        let maps = site.matches(of: /map \$http_accept \$(wanted_\w+) \{\n +"~\*(.+)" (.+);\n\}/)
        #expect(maps.count == 3)
        for map in maps {
            let isNamed = try Regex(String(map.2)).ignoresCase().firstMatch(in: accept) != nil
            for name in ["${\(map.1)}", "$\(map.1)"] {
                types = types.replacingOccurrences(of: name, with: isNamed ? String(map.3) : "")
            }
        }
        #expect(types == wanted)
    }

    @Test(.enabled(if: ChildProcess.find("node") != nil), arguments: negotiations)
    func theFunctionsForCDNsPassOnTheSame(_ accept: String, _ wanted: String) throws {
        let functions = try Document("docs/negotiation.md").codeBlocks.filter { $0.language == "js" }.map(\.text)
        #expect(functions.count == 2)
        let calls = [
            "console.log(handler({ request: { headers: { accept: { value: accept } } } }).headers.accept.value);",
            """
            globalThis.fetch = (request, { cf }) => console.log(request.headers.get('Accept') + ' ' + cf.cacheKey);
            worker.fetch(new Request('http://localhost/a.gif', { headers: { accept } }));
            """,
        ]
        let outputs = try zip(functions, calls).map { function, call in
            let script =
                "const accept = '\(accept)';\n" + function.replacingOccurrences(of: "export default", with: "const worker =")
                + call
            return try ChildProcess(try #require(ChildProcess.find("node")), ["-e", script]).finish().output
        }
        #expect(outputs == [wanted, "\(wanted) http://localhost/a.gif#\(wanted)"])
    }

    @Test(arguments: ["gifreel.conf", "cluster.conf"])
    func theRoutesOfOperatorsAreForPrivateNetworks(_ name: String) throws {
        let pattern = try #require(try found(#"location ~ (\S+) \{\n +allow 127"#, "config/nginx/\(name)").first)
        let table = try #require(try Document("docs/api.md").text.components(separatedBy: "## Administration").last)
        let paths = table.matches(of: try Regex("`(?:GET|POST|DELETE) (/[a-z]+)[^`]*` \\|", as: (Substring, Substring).self))
        #expect(paths.count > 8)
        let rule = try Regex(pattern)
        let service = ["/healthz", "/readyz", "/metrics"]
        for path in Set(paths.map { $0.1 }) where !service.contains(String(path)) {
            #expect(try rule.firstMatch(in: path) != nil, "\(path)")
        }
    }

    /// nginx passes on the client's own `X-Forwarded-For` unless the site sets the field.
    @Test func theSitesOfTheDocumentationNameTheClient() throws {
        let blocks = try Document.all().flatMap(\.codeBlocks).filter {
            $0.language == "nginx" && $0.text.contains("proxy_pass http://127.0.0.1:8080")
        }
        #expect(!blocks.isEmpty)
        for block in blocks {
            #expect(block.text.contains("proxy_set_header X-Forwarded-For $remote_addr;"), "\(block.section)")
        }
    }

    @Test func noCacheAnswersForTheBalancer() throws {
        let probes = try found(#"location = /healthz \{([^}]+)\}"#, "config/nginx/cluster.conf")
        #expect(probes.count == 1 && probes.allSatisfy { $0.contains("add_header Cache-Control no-store;") })
    }

    @Test func proxiesWaitLongerThanTheServer() throws {
        let minutes = try #require(try found("`transcode.wait_timeout`.*?\\| `(\\d+)m` \\|", "docs/configuration.md").first)
        let limit = try #require(Int(minutes)) * 60
        let times = try [
            ("config/nginx/gifreel.conf", "proxy_read_timeout (\\d+)s;"),
            ("config/nginx/cluster.conf", "proxy_read_timeout (\\d+)s;"),
            ("config/kubernetes/ingress.yaml", "proxy-read-timeout: \"(\\d+)\""),
            ("config/compose.yaml", "stop signal.\n +stop_grace_period: (\\d+)s"),
        ].map { try #require(try found($0.1, $0.0).first.flatMap { Int($0) }, "\($0.0)") }
        #expect(times.allSatisfy { $0 > limit }, "\(times)")
    }

    /// A reload whose file the server refuses is to fail for `systemctl` as well.
    @Test func aReloadChecksTheSettingsFirst() throws {
        let unit = try Document("config/systemd/gifreel.service").text
        let reloads = unit.split(separator: "\n").filter { $0.hasPrefix("ExecReload=") }
        #expect(reloads.count == 2)
        #expect(reloads.first?.contains("serve --check") == true)
        #expect(reloads.last?.contains("-HUP $MAINPID") == true)
    }
}
