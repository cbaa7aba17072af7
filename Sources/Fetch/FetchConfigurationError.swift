/// A setting of ``FetchConfiguration`` that cannot work.
package struct FetchConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The setting's name, without the name of its group.
    package let setting: String
    /// The rest of the sentence that begins with the name.
    package let reason: String

    package var description: String { "\(setting) \(reason)" }
}
