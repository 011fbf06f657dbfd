"""`python -m pyfastr.cli` is the `pyfastr` command."""

from pyfastr.cli import main

if __name__ == "__main__":
    main()
