/// The program. It has a file of its own because the commands depend on the composition root, which depends on this.
package enum Gifreel {
    package static let version = "0.1.0"
}
