"""A meeting of parties: they know each other by pinned keys, agree on a plan and a run, compute with MPyC, open once.

`keys` are the parties' keys, `roster` the file that says who they are, `terms` what they must have alike, `links` the
TLS connections, `meeting` what all computations have in common, `opening` how shares are opened, `common_word` how a
word is agreed on, `runs` what a party remembers, `engine` MPyC, and `sum` the sum of the parties' reports.
SECURITY.md says what is promised, and what is not.
"""
