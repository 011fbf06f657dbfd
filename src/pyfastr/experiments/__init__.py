"""The paper's tables and figures as studies that can be interrupted, resumed and shared.

`pyfastr reproduce` is their command. A study is a list of problems, a plan adds methods and trials,
`runner.run` does the fits, and `report.write_report` turns the results into files.
"""
