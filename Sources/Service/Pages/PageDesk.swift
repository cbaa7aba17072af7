internal import Glibc
internal import HTTP

/// Answers with pages.
struct PageDesk: Sendable {
    private let homePage: HomePage?

    init(_ configuration: ServiceConfiguration) {
        homePage = configuration.hasHomePage ? HomePage(configuration, isSigned: configuration.requiresSignature, startedAt: time(nil)) : nil
    }

    /// `/`.
    ///
    /// - Throws: `not_found` where it is switched off.
    func home() throws(Problem) -> HTTPResponse {
        guard let homePage else { throw .notFound }
        return homePage.response
    }
}
