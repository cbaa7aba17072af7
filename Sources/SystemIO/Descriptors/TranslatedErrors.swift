/// Returns the value of an expression, or throws another error in place of its error:
///
/// ```
/// let size = try translating(try file.size()) { (error: SystemError) in SettingsError("\(path): \(error)") }
/// let found = try await translating(awaiting: try await cache.list(of: url), to: RenditionError.init)
/// ```
package func translating<Value, Failure: Error, Other: Error>(
    _ value: @autoclosure () throws(Failure) -> Value, to other: (Failure) -> Other
) throws(Other) -> Value {
    do throws(Failure) {
        return try value()
    } catch {
        throw other(error)
    }
}

/// Returns the value of an expression that suspends, or throws another error in place of its error.
package func translating<Value, Failure: Error, Other: Error>(
    awaiting value: @autoclosure () async throws(Failure) -> Value, to other: (Failure) -> Other
) async throws(Other) -> Value {
    do throws(Failure) {
        return try await value()
    } catch {
        throw other(error)
    }
}
