import Foundation
import HTTPClient
import TestSupport
import Testing

@testable import Store

/// rclone is installed for the longer checks only.
@Suite("Connections over TLS are verified", .enabled(if: S3Server.Kind.rclone.isInstalled)) struct TLSTests {
    /// A certificate for 127.0.0.1, which only its own file vouches for.
    private func certificate(in folder: URL) throws -> (certificate: URL, key: URL) {
        let files = (folder.appendingPathComponent("certificate.pem"), folder.appendingPathComponent("key.pem"))
        let outcome = try ChildProcess(
            URL(fileURLWithPath: "/usr/bin/openssl"),
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", files.1.path, "-out", files.0.path, "-days", "2",
                "-subj",
                "/CN=gifreel", "-addext", "subjectAltName=IP:127.0.0.1",
            ]
        ).finish()
        try #require(outcome.code == 0, "\(outcome.log)")
        return files
    }

    @Test func aServerIsTrustedByTheFileOfItsAuthorityOnly() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = try certificate(in: folder)
        let server = try S3Server(.rclone, certificate: files)
        defer { server.stop() }
        func error(host: String = "127.0.0.1", authorities: String?) async throws -> StoreError? {
            let bucket = try S3Bucket(
                endpoint: S3Endpoint(url: "https://\(host):\(server.port)", region: "us-east-1", usesPathStyle: true),
                name: server.bucket, keys: .fixed(S3Credentials(accessKey: server.accessKey, secretKey: server.secretKey)),
                certificateAuthorities: authorities)
            let http = try HTTPClient(name: "test", limits: .init(running: 1))
            defer { http.stop() }
            let client = S3Client(http, bucket: bucket)
            return await storeError {
                _ = try await client.get("missing", to: .memory(limit: 1), timeout: .seconds(20))
            }
        }
        #expect(try await error(authorities: files.certificate.path) == nil)
        #expect(try await error(authorities: nil)?.label == "unreachable")
        #expect(try await error(authorities: folder.appendingPathComponent("missing.pem").path)?.label == "unreachable")
        // The certificate is for the address only.
        #expect(try await error(host: "localhost", authorities: files.certificate.path)?.label == "unreachable")
    }
}
