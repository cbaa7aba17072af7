import HTTPClient
import Testing

@testable import Store

@Suite("Addresses of objects are built and encoded as they are signed") struct S3EndpointTests {
    private func endpoint(_ url: String?, pathStyle: Bool, region: String = "eu-west-1") throws -> S3Endpoint {
        try S3Endpoint(url: url, region: region, usesPathStyle: pathStyle)
    }

    @Test func theBucketIsPartOfThePathOrOfTheHost() throws {
        #expect(
            try endpoint("http://127.0.0.1:9000", pathStyle: true).url(bucket: "b", key: "p/k.mp4")
                == "http://127.0.0.1:9000/b/p/k.mp4")
        #expect(
            try endpoint("https://s3.example.com/", pathStyle: false).url(bucket: "b", key: "p/k.mp4")
                == "https://b.s3.example.com/p/k.mp4")
        #expect(try endpoint(nil, pathStyle: false).url(bucket: "b", key: "k") == "https://b.s3.eu-west-1.amazonaws.com/k")
        // Containers have such names.
        for host in ["[::1]:9000", "my_minio_1:9000"] {
            #expect(try endpoint("http://\(host)", pathStyle: true).url(bucket: "b", key: "k") == "http://\(host)/b/k")
        }
    }

    @Test func theBucketItselfHasTheAddressOfItsRoot() throws {
        let query = [(name: "prefix", value: "a"), (name: "list-type", value: "2")]
        #expect(
            try endpoint("http://h", pathStyle: true).url(bucket: "b", key: "", query: query)
                == "http://h/b?prefix=a&list-type=2")
        #expect(
            try endpoint("http://h", pathStyle: false).url(bucket: "b", key: "", query: query)
                == "http://b.h/?prefix=a&list-type=2")
    }

    @Test func everythingButUnreservedCharactersIsEncoded() throws {
        let endpoint = try endpoint("http://h", pathStyle: true)
        #expect(
            endpoint.url(bucket: "b", key: "aZ09-._~/ +%&=?#'()*!é")
                == "http://h/b/aZ09-._~/%20%2B%25%26%3D%3F%23%27%28%29%2A%21%C3%A9")
        #expect(endpoint.url(bucket: "b", key: "", query: [("prefix", "a/b c+")]) == "http://h/b?prefix=a%2Fb%20c%2B")
    }

    @Test(arguments: [
        "", "h", "ftp://h", "http://", "http://h/path", "http://u:p@h", "http://h?q", "http://h:0", "http://h:99999",
        "http://h h",
        "http://[::1", "http://h:", "http://[]",
    ])
    func otherEndpointsAreRefused(_ url: String) {
        #expect(throws: StoreConfigurationError.self) { try endpoint(url, pathStyle: true) }
    }

    @Test(arguments: ["", "eu west", "a:b", "a/b", String(repeating: "a", count: 64)])
    func otherRegionsAreRefused(_ region: String) {
        #expect(throws: StoreConfigurationError.self) { try endpoint("http://h", pathStyle: true, region: region) }
    }

    @Test func aBucketMustFitTheAddress() throws {
        let path = try endpoint("https://h", pathStyle: true)
        let host = try endpoint("https://h", pathStyle: false)
        try path.validate(bucket: "My_Bucket.old")
        try host.validate(bucket: "my-bucket")
        try endpoint("http://h", pathStyle: false).validate(bucket: "my.bucket")
        for name in ["", "a/b", "a b", ".a", "a..b", String(repeating: "a", count: 64)] {
            #expect(throws: StoreConfigurationError.self) { try path.validate(bucket: name) }
        }
        for name in ["my.bucket", "My", "my_bucket"] {
            #expect(throws: StoreConfigurationError.self) { try host.validate(bucket: name) }
        }
        for address in ["http://127.0.0.1:9000", "http://10.0.0.7", "http://[::1]:9000"] {
            try endpoint(address, pathStyle: true).validate(bucket: "b")
            #expect(throws: StoreConfigurationError.self) { try endpoint(address, pathStyle: false).validate(bucket: "b") }
        }
        try endpoint("http://minio1:9000", pathStyle: false).validate(bucket: "b")
    }

    @Test func locationsOfMountsAreRead() throws {
        let location = try S3Location("s3://bucket/a/b c")
        #expect(location.bucket == "bucket" && location.key == "a/b c")
        #expect(try S3Location("S3://bucket").key == "")
        #expect(try S3Location("s3://bucket/a/").key == "a/")
        for text in ["http://b/k", "s3://b//k", "s3://b/a/../k", "s3://b/./k", "s3://b/a\nb"] {
            #expect(throws: StoreConfigurationError.self) { try S3Location(text) }
        }
    }

    @Test func aBucketCanBeReadByAnotherClient() throws {
        let credentials = try S3Credentials(accessKey: "AK", secretKey: "SK", sessionToken: "TOKEN")
        for (pathStyle, expected) in [(true, "https://h.test/gifs/"), (false, "https://gifs.h.test/")] {
            let bucket = try S3Bucket(
                endpoint: endpoint("https://h.test", pathStyle: pathStyle), name: "gifs", keys: .fixed(credentials))
            #expect(bucket.url == expected)
            #expect(
                bucket.signer
                    == .fixed(
                        SignatureV4(region: "eu-west-1", accessKey: "AK", secretKey: "SK", sessionToken: "TOKEN")))
            let open = try S3Bucket(
                endpoint: endpoint("https://h.test", pathStyle: pathStyle), name: "gifs", keys: .none)
            #expect(open.signer == nil)
        }
    }

    @Test(arguments: [("", "s"), ("a b", "s"), ("a", "s\n"), ("é", "s")])
    func keysThatCannotBeSentAreRefused(_ access: String, _ secret: String) {
        #expect(throws: StoreConfigurationError.self) { try S3Credentials(accessKey: access, secretKey: secret) }
    }
}
