"""
A folder of brain images
========================

:class:`pyfastr.imaging.NiftiRegressor` takes image files as they are and gives the coefficient back
as an image on the same grid, ready for nilearn's plotting. The study here is simulated and small:
60 subjects, a NIfTI file each, a mask, and a table with score and age.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import nibabel as nib
import numpy as np
import pandas as pd
from nilearn import plotting

from pyfastr import FasTRRegressorCV
from pyfastr.datasets import make_nifti_study
from pyfastr.display import FactorsDisplay
from pyfastr.imaging import NiftiRegressor

# %%
# The files. With your own data, this is where you read your table.

folder = Path(tempfile.mkdtemp())
study = make_nifti_study(folder, n_subjects=60, random_state=0)
table = pd.read_csv(study.table, sep="\t")
images = [folder / name for name in table["image"]]
print(table.head(3))

# %%
# Age is a confound: it enters the model as a column of its own and is fitted anew in every fold.
# The last 20 subjects are kept to test the model.

train, test = slice(0, 40), slice(40, 60)
choice = FasTRRegressorCV(ridges=[0.01, 0.1, 1.0], random_state=0)
model = NiftiRegressor(choice, mask_img=study.mask)
model.fit(images[train], table["score"][train], confounds=table[["age"]][train])
score = model.score(images[test], table["score"][test], confounds=table[["age"]][test])
print(f"R² of 20 subjects held out: {score:.2f}")

# %%
# The coefficient is an image like any other. ``to_filename`` saves it, and nilearn draws it, here
# over the mean image of the subjects and beside the truth.

truth = nib.Nifti1Image(study.coef, study.affine)
peak = study.affine[:3] @ [*np.unravel_index(np.abs(study.coef).argmax(), study.coef.shape), 1]
figure, axes = plt.subplots(2, 1, figsize=(8, 6))
for axis, image, title in zip(axes, (truth, model.coef_img_), ("truth", "estimate"), strict=True):
    plotting.plot_stat_map(
        image,
        bg_img=model.mean_img_,
        cut_coords=peak,
        axes=axis,
        title=title,
        draw_cross=False,
        symmetric_cbar=True,
        vmax=np.abs(study.coef).max(),
    )
plt.show()

# %%
# The factors run along the axes of the image, in millimetres.

FactorsDisplay.from_estimator(model)
plt.show()
