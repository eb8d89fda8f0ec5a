"""The error family. Every message says the rule, what was found, and what to do."""


class OptdpError(Exception):
    """Anything that optdp refuses to do; `exit_code` is what the command line returns."""

    exit_code = 2


class ProblemError(OptdpError):
    """The problem, or an option, is at fault: it cannot be solved as it stands."""

    exit_code = 2


class ArtifactError(OptdpError):
    """A file was cut off or changed, is hostile, or is not an artifact at all."""

    exit_code = 2


class CertificateError(OptdpError):
    """A guarantee does not hold."""

    exit_code = 1


class InfeasibleError(OptdpError):
    """No mechanism satisfies every constraint of the problem."""

    exit_code = 1


class SolverError(OptdpError):
    """A solver failed, or gave no usable answer."""

    exit_code = 3
