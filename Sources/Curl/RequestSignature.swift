/// The parameters with which libcurl signs a request by AWS Signature Version 4.
package struct RequestSignature: Sendable, Equatable {
    /// The value of `CURLOPT_AWS_SIGV4`.
    package let scheme: String
    /// The value of `CURLOPT_USERNAME`: the access key.
    package let user: String
    /// The value of `CURLOPT_PASSWORD`: the secret key.
    package let password: String

    package init(scheme: String, user: String, password: String) {
        self.scheme = scheme
        self.user = user
        self.password = password
    }
}
